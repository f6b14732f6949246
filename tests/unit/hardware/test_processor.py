"""Facts of processors, told from what Linux says of them."""

import os

import pytest
import tensorflow as tf

from official_transformer.hardware import processor as lib


@pytest.mark.parametrize(
  ("vendor", "flags", "expected"),
  [
    ("GenuineIntel", "avx2 avx512f", False),
    ("GenuineIntel", "avx512f avx512_bf16", False),
    ("GenuineIntel", "avx512f avx512_bf16 amx_bf16", True),
    ("AuthenticAMD", "avx512f", False),
    ("AuthenticAMD", "avx512f avx512_bf16", True),
  ],
)
def test_bfloat16_units_are_those_that_are_fast(vendor, flags, expected):
  cpuinfo = f"processor\t: 0\nvendor_id\t: {vendor}\nflags\t\t: fpu {flags}\n\n"
  assert lib.has_bfloat16_units(2 * cpuinfo) == expected


@pytest.mark.parametrize(
  "features, expected", [("bf16", True), ("i8mm", False)]
)
def test_an_arm_processor_is_believed(features, expected):
  cpuinfo = f"processor\t: 0\nFeatures\t: fp asimd {features}\n\n"
  assert lib.has_bfloat16_units(2 * cpuinfo) == expected


@pytest.mark.parametrize(
  ("flags", "set_before", "expected"),
  [
    ("sse4_2 avx2", None, "1"),
    ("sse4_2 avx2", "0", "0"),
    ("avx2 avx512f", None, None),
    ("sse4_2", None, None),
  ],
)
def test_onednn_is_preferred_where_tensorflow_does_not(
  flags, set_before, expected, monkeypatch
):
  monkeypatch.setattr(lib, "cpuinfo", lambda: f"flags\t\t: {flags}\n")
  environment = {lib.ONEDNN: set_before} if set_before else {}
  monkeypatch.setattr(os, "environ", environment)
  lib.prefer_onednn()
  assert environment.get(lib.ONEDNN) == expected


@pytest.mark.parametrize(
  ("flags", "onednn", "columns", "expected"),
  [
    ("avx2", "1", 512, 16),
    ("avx2", "true", 1536, 16),
    ("avx2", "1", 256, 0),
    ("avx2", "1", 768, 0),
    ("avx2", "0", 512, 0),
    ("avx2", None, 512, 0),
    ("avx2 avx512f", "1", 512, 0),
    ("", "1", 512, 0),
  ],
)
def test_kernels_have_spare_columns_where_that_is_faster(
  flags, onednn, columns, expected, monkeypatch
):
  monkeypatch.setattr(lib, "cpuinfo", lambda: f"flags\t\t: fpu {flags}\n")
  monkeypatch.delenv(lib.ONEDNN, raising=False)
  if onednn:
    monkeypatch.setenv(lib.ONEDNN, onednn)
  monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: [])
  assert lib.padding_columns_for(columns) == expected
  with lib.traced_for(lib.Target.ANY_PROCESSOR):
    assert lib.padding_columns_for(columns) == (
      16 if columns in (512, 1536) else 0
    )
    assert not lib.transposed_is_faster(512)
  with lib.traced_for(lib.Target.XLA):
    assert lib.padding_columns_for(columns) == 0
    assert lib.transposed_is_faster(512) == (flags == "avx2")
    assert not lib.transposed_is_faster(256)
  assert not lib.transposed_is_faster(512)
  assert lib.padding_columns_for(columns) == expected
  # Where there is an accelerator, the host's processor decides nothing.
  monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: [kind])
  assert lib.padding_columns_for(columns) == 0
  with lib.traced_for(lib.Target.XLA):
    assert not lib.transposed_is_faster(512)

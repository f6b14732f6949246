"""The example's client and configuration, beside a server made for the test.

TensorFlow Serving itself comes as a container alone. The server here speaks its
protocol, and answers with an export loaded by TensorFlow.
"""

import concurrent.futures
import http.server
import json
import pathlib
import subprocess
import sys
import threading

import pytest
import tensorflow as tf
from command_line import MAIN, succeed
from google.protobuf import text_format
from trained_model import lines_of, read_frozen

grpc = pytest.importorskip("grpc")
apis = pytest.importorskip("tensorflow_serving.apis")

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "serving"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lines():
  return [line.strip() for line in lines_of(read_frozen(), "sources")[:20]]


@pytest.fixture(scope="module")
def expected(trained_model, lines, tmp_path_factory):
  source = tmp_path_factory.mktemp("text") / "in"
  source.write_text("\n".join(lines) + "\n", encoding="utf-8")
  flags = [f"--model_dir={trained_model}", f"--file={source}"]
  return succeed(MAIN, "--mode=predict", *flags).stdout


@pytest.fixture(scope="module")
def translate(trained_model, lines, tmp_path_factory):
  directory = tmp_path_factory.mktemp("exports")
  (directory / "in").write_text("\n".join(lines) + "\n", encoding="utf-8")
  path = directory / "translation" / "1"
  flags = [f"--model_dir={trained_model}", f"--file={directory}/in"]
  succeed(MAIN, "--mode=export", f"--export_dir={path}", *flags)
  return tf.saved_model.load(str(path)).signatures["translate_text"]


def ask(lines, *flags):
  return subprocess.run(
    [sys.executable, EXAMPLE / "client.py", *flags],
    input="\n".join(lines) + "\n",
    capture_output=True,
    text=True,
    check=True,
  ).stdout


def test_by_grpc(translate, lines, expected):
  from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

  class Server(prediction_service_pb2_grpc.PredictionServiceServicer):
    def Predict(self, request, context):  # noqa: N802
      assert request.model_spec.name == "translation"
      assert request.model_spec.signature_name == "translate_text"
      text = tf.constant(tf.make_ndarray(request.inputs["text"]))
      answer = predict_pb2.PredictResponse()
      for name, tensor in translate(text=text).items():
        answer.outputs[name].CopyFrom(tf.make_tensor_proto(tensor.numpy()))
      return answer

  server = grpc.server(concurrent.futures.ThreadPoolExecutor(1))
  prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
    Server(), server
  )
  port = server.add_insecure_port("127.0.0.1:0")
  server.start()
  try:
    assert ask(lines, f"--address=127.0.0.1:{port}") == expected
  finally:
    server.stop(None)


def test_by_rest(translate, lines, expected):
  class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
      assert self.path == "/v1/models/translation:predict"
      length = int(self.headers["Content-Length"])
      question = json.loads(self.rfile.read(length))
      assert question["signature_name"] == "translate_text"
      found = translate(text=tf.constant(question["inputs"]["text"]))
      texts = [t.decode() for t in found["translations"].numpy()]
      body = json.dumps({"outputs": {"translations": texts}}).encode()
      self.send_response(200)
      self.send_header("Content-Length", str(len(body)))
      self.end_headers()
      self.wfile.write(body)

    def log_message(self, *_):
      pass

  with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    address = f"--address=127.0.0.1:{server.server_port}"
    try:
      assert ask(lines, "--rest", address) == expected
    finally:
      server.shutdown()
      thread.join()


def test_the_configuration_is_tensorflow_servings():
  from tensorflow_serving.config import model_server_config_pb2

  config = text_format.Parse(
    (EXAMPLE / "models.config").read_text("utf-8"),
    model_server_config_pb2.ModelServerConfig(),
  )
  (model,) = config.model_config_list.config
  assert model.name == "translation"
  assert model.model_version_policy.latest.num_versions == 2
  composed = (EXAMPLE / "docker-compose.yml").read_text("utf-8")
  for name in ("models.config", "batching.config"):
    assert f"./{name}:/models/{name}:ro" in composed
    assert (EXAMPLE / name).exists()
  assert model.base_path.startswith("/models/served/")
  assert "./models:/models/served:ro" in composed

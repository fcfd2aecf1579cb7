# The two commands of the README. Everything happens in .venv, which is made when it is missing
# and brought up to date when a source has changed.
PYTHON ?= python3
TRIALS ?= 64
SHAPE  ?= 4096,4096

.PHONY: tune test check clean

tune:
	@$(PYTHON) scripts/setup.py
	@.venv/bin/atim tune mtv --shape $(SHAPE) --dpus 2048 --trials $(TRIALS) --work-dir runs/mtv

test:
	@$(PYTHON) scripts/setup.py test
	@scripts/test

check:
	@$(PYTHON) scripts/setup.py lint
	@scripts/check

clean:
	rm -rf .venv build

# Two commands: `make demo` and `make test`. Both make .venv, bring what they need, and are quick the second time.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo test lint packages-demo packages-test clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := demo

# What no Python package brings: language models for the reader, fonts for ten languages, and a browser for the tests of pages.
DEMO_PACKAGES := $(addprefix tesseract-ocr-,eng ara hin chi-sim jpn kor rus fra spa por) fonts-noto-core fonts-noto-cjk
TEST_PACKAGES := $(DEMO_PACKAGES) tesseract-ocr-ben tesseract-ocr-swa chromium chromium-driver

help:
	@echo "make demo   prompts -> images -> observations -> scores -> a report, offline, on real input"
	@echo "make test   linters, types and every test"
	@echo "make clean  remove $(VENV) and $(DEMO)/"

$(VENV)/demo-installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[run]'
	touch $@

$(VENV)/test-installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[run,generate,clip,ray,survey,controls,safety,nudenet,dev]'
	touch $@ $(VENV)/demo-installed

# $(call system-packages,NAMES): install what is missing with apt where that is possible, else say what to do.
define system-packages
	@missing=(); \
	if command -v dpkg-query >/dev/null; then \
		for package in $(1); do \
			dpkg-query --show --showformat='$${db:Status-Status}' $$package 2>/dev/null | grep -qx installed || missing+=($$package); \
		done; \
		if (( $${#missing[@]} )); then \
			if [ "$$(id -u)" = 0 ]; then as_root=(); \
			elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then as_root=(sudo -n); \
			else echo "These packages are missing, and installing them needs rights that this user does not have: $${missing[*]}"; \
				echo "Run: sudo apt-get install $${missing[*]}"; exit 1; fi; \
			echo "Installing $${missing[*]}"; \
			"$${as_root[@]}" apt-get -qq update; \
			DEBIAN_FRONTEND=noninteractive "$${as_root[@]}" apt-get -qq install --yes --no-install-recommends "$${missing[@]}" >/dev/null; \
		fi; \
	else \
		echo "No apt here. If a language model, a font or a browser is missing, you are told when it is needed. To bring all of them:"; \
		echo "  macOS:  brew install tesseract-lang && brew install --cask font-noto-sans font-noto-naskh-arabic font-noto-sans-devanagari font-noto-sans-cjk"; \
		echo "  Fedora: dnf install tesseract-langpack-{eng,ara,hin,chi_sim,jpn,kor,rus,fra,spa,por} google-noto-sans-fonts google-noto-naskh-arabic-fonts google-noto-sans-devanagari-fonts google-noto-sans-cjk-fonts chromium chromedriver"; \
	fi
endef

packages-demo:
	$(call system-packages,$(DEMO_PACKAGES))

packages-test:
	$(call system-packages,$(TEST_PACKAGES))

LADDER := none light heavy
RUNS := $(foreach damage,$(LADDER),$(DEMO)/runs/glyph-$(damage))

demo: packages-demo $(VENV)/demo-installed
	@rm -rf $(DEMO)
	@echo "== prompts: the starter edition"
	@$(BIN)/t2i-parity build --edition starter --out $(DEMO)/prompts
	@for damage in $(LADDER); do \
		echo "== images and observations: signs typeset with damage $$damage, then read"; \
		$(BIN)/t2i-parity generate --model glyph --set background=sign --set damage=$$damage --prompts $(DEMO)/prompts --config lingt2i_text --limit 200 --out $(DEMO)/runs/glyph-$$damage; \
		$(BIN)/t2i-parity judge $(DEMO)/runs/glyph-$$damage --with hybrid; \
	done
	@echo "== an audit: a text filter over six varieties of English"
	@$(BIN)/t2i-parity audit-filter --filter profanity-check --prompts $(DEMO)/prompts --config dialect --out $(DEMO)/runs/dialect
	@echo "== scores and the page"
	@$(BIN)/t2i-parity score $(RUNS) $(DEMO)/runs/dialect --tokenizer tekken
	@$(BIN)/t2i-parity report $(RUNS) $(DEMO)/runs/dialect --title "T2I Parity demo" --no-tables --out $(DEMO)/report.html
	@echo
	@echo "The report:         $(DEMO)/report.html"
	@echo "  open it:          $(BIN)/python -m webbrowser -t $(DEMO)/report.html"
	@echo "A result dataset:   $(DEMO)/runs/glyph-light"
	@echo "  open it:          $(BIN)/python -c \"from datasets import load_dataset; print(load_dataset('$(DEMO)/runs/glyph-light', 'scored', split='test'))\""

lint: $(VENV)/test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: packages-test $(VENV)/test-installed lint
	$(BIN)/pytest --numprocesses 2 --dist loadfile

clean:
	rm -rf $(VENV) $(DEMO)

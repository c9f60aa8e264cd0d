"""Settings of the tests: those of development, faster, whatever `.env` says."""

import os

os.environ["ENVIRONMENT"] = "development"
os.environ.setdefault("SECRET_KEY", "tests-only-" + "0123456789" * 5)
os.environ.setdefault("DEBUG", "false")
os.environ.setdefault("ALLOWED_HOSTS", "testserver,localhost,127.0.0.1")
os.environ.setdefault("THROTTLE_USER", "100000/min")
os.environ.setdefault("THROTTLE_ANONYMOUS", "100000/min")
os.environ.setdefault("LOG_LEVEL", "WARNING")
os.environ["GITHUB_TOKEN"] = ""  # of whoever runs the tests: nothing may reach GitHub

from ragsite.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Serve what the finders find: nothing is collected.
WHITENOISE_AUTOREFRESH = True
TEST_RUNNER = "tests.runner.PytestRunner"

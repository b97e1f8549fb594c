"""The documentation site: pages of docs/ and pages made from code, as sources that Sphinx builds.

`python -m workflow.documentation` (`make docs`) writes site/. Only `conf` and its extensions, which Sphinx
loads, need the packages of requirements-docs.lock.
"""

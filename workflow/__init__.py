"""The machinery: rules, scripts, schemas and reporting."""

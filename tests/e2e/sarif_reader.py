"""What is wrong with a SARIF log by its published schema, for crawl_links_test.py. Run by the system's Python with the schema's file
and the log's. Standard output: a list of sentences in JSON."""
import json
import pathlib
import sys

import jsonschema


def main():
    schema, log = (json.loads(pathlib.Path(file).read_text()) for file in sys.argv[1:3])
    validator = jsonschema.validators.validator_for(schema)
    print(json.dumps([error.message for error in validator(schema, format_checker=validator.FORMAT_CHECKER).iter_errors(log)]))


main()

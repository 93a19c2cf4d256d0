"""`recipe build`: recipes built from options are valid by the published schema, and run."""

import json
import os

import jsonschema
import recipes
from harness import must

HERE = os.path.dirname(os.path.abspath(__file__))
PUBLISHED = os.path.join(HERE, "..", "conformance", "public", "recipe.schema.json")

OPTIONS = {
    "phpunit": {"source": "./shop", "testsDir": "tests", "phpunit-args": ["--filter", "Sum"], "env": {"MODE": "x"}, "timeoutMs": 60000},
    "bench": {"source": "./shop", "iterations": 2, "workloads": [{"id": "sum", "type": "php", "code": "return 1;"}], "metadata": {"of": "a test"}},
    "template": {"name": "listing", "runtime_env": {"A": "1"}},
    "generic-ability-runtime-run": {"ability": {"name": "shop/sum", "input": {"numbers": [1, 2]}}, "extra_plugins": [{"source": "./shop"}]},
    "runtime-package-run": {"schema": "wp-codebox/runtime-package-task/v1", "package": {"slug": "writer", "source": "./writer.json"},
                            "workflow": {"id": "writer/run"}, "input": {"topic": "cats"},
                            "artifact_declarations": [{"name": "report", "path": "/workspace/report.json"}], "required_artifacts": ["report"]},
}


def build(bench, kind, options, *more):
    return bench.call("recipe", "build", kind, "--options", options if isinstance(options, str) else json.dumps(options), *more)


def shop(bench):
    """Writes a plugin with a test and an ability; returns the directory beside it."""
    directory = os.path.join(bench.directory, "built")
    files = {"shop/shop.php": """<?php
/* Plugin Name: Shop */
function shop_sum( array $numbers ) { return array_sum( $numbers ); }
add_action( 'wp_abilities_api_categories_init', fn() => wp_register_ability_category( 'shop', [ 'label' => 'Shop', 'description' => 'Shop.' ] ) );
add_action( 'wp_abilities_api_init', fn() => wp_register_ability( 'shop/sum', [
	'label' => 'Sum', 'description' => 'Adds numbers.', 'category' => 'shop',
	'input_schema' => [ 'type' => 'object' ], 'output_schema' => [ 'type' => 'object' ],
	'permission_callback' => '__return_true', 'execute_callback' => fn( $input ) => [ 'sum' => shop_sum( $input['numbers'] ) ],
] ) );
""",
             "shop/tests/SumTest.php": "<?php\nfinal class SumTest extends PHPUnit\\Framework\\TestCase { public function test_sum(): void { $this->assertSame( 3, 1 + 2 ); } }\n"}
    for name, content in files.items():
        path = os.path.join(directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
    return directory


def test_built_recipe_of_each_kind_is_valid_by_the_published_schema(bench):
    with open(PUBLISHED, encoding="utf-8") as file:
        schema = json.load(file)
    # `$id` is not a URL, so the validator could not resolve references within the schema against it.
    schema.pop("$id")
    published = jsonschema.Draft202012Validator(schema)
    for kind, options in OPTIONS.items():
        recipe = build(bench, kind, options).expect(0).json
        errors = [f"{'/'.join(map(str, error.path))}: {error.message}" for error in published.iter_errors(recipe)]
        must(errors == [], f"{kind}: {errors}")
    # Control: the schema notices a wrong recipe.
    must(not published.is_valid({**recipe, "colour": "red"}), "the schema accepts an unknown member")


def test_recipes_built_for_four_kinds_run_successfully(bench):
    directory = shop(bench)
    output = os.path.join(directory, "recipe.json")
    for kind, check in [("phpunit", lambda row: json.loads(row["stdout"])["summary"]["passed"] == 1),
                        ("bench", lambda row: "sum" in row["stdout"]),
                        ("template", lambda row: "akismet" in row["stdout"] or "name" in row["stdout"]),
                        ("generic-ability-runtime-run", lambda row: '"sum":3' in row["stdout"].replace(" ", ""))]:
        answer = build(bench, kind, OPTIONS[kind], "--output", output).expect(0)
        must("recipe-run --recipe" in answer.stderr, str(answer))
        ran = recipes.run(bench, output).expect(0)
        must(check(recipes.executions(ran, "steps")[0]), f"{kind}: {ran}")


def test_recipe_build_with_wrong_options_lists_all_of_them_and_writes_no_file(bench):
    output = os.path.join(bench.directory, "never.json")
    answer = build(bench, "phpunit", {"pluginSlug": {"a": 1}, "colour": "red"}, "--output", output, "--json").expect(1, "wp_codebox_input_invalid")
    must(not os.path.exists(output), "a recipe was written")
    must([row["path"] for row in answer.json["error"]["data"]["issues"]] == ["$.pluginSlug", "$.colour"], str(answer))
    build(bench, "phpunit", "/none/options.json", "--json").expect(1, "wp_codebox_input_invalid")
    build(bench, "phpunit", {"pluginSlug": "a"}, "--output", os.path.join(bench.directory, "none", "a.json"), "--json").expect(1, "wp_codebox_input_invalid")
    build(bench, "no-such-kind", {}).expect(1)
    build(bench, "phpunit", {"pluginSlug": "a"}, "--output", output).expect(0)

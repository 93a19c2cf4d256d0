use super::*;

fn recipe(kind: BuildKind, options: &Value) -> Value {
    build(kind, options.to_string().as_bytes())
        .unwrap_or_else(|issues| panic!("{kind:?} {options}: {issues:?}"))
}

fn paths(kind: BuildKind, options: &Value) -> Vec<String> {
    let issues = build(kind, options.to_string().as_bytes()).unwrap_err();
    issues.into_iter().map(|issue| issue.path).collect()
}

#[test]
fn phpunit_options_become_arguments_of_one_step_and_a_mount_of_the_plugin() {
    let built = recipe(
        BuildKind::Phpunit,
        &json!({
            "source": "./plugins/shop/",
            "tests-dir": "tests/unit",
            "phpunit_args": ["--filter", "Cart"],
            "env": {"A": "1"},
            "dependencyMounts": ["/a", "/b"],
            "multisite": true,
            "wp": "7.1",
            "timeoutMs": 5000,
            "mounts": [{"source": "lib", "target": "/workspace/lib"}],
        }),
    );
    assert_eq!(
        built["workflow"]["steps"],
        json!([{
            "timeoutMs": 5000,
            "command": "wordpress.phpunit",
            "args": [
                "tests-dir=tests/unit",
                "phpunit-args-json=[\"--filter\",\"Cart\"]",
                "env-json={\"A\":\"1\"}",
                "dependency-mounts=/a,/b",
                "multisite=true",
                "plugin-slug=shop",
            ],
        }])
    );
    assert_eq!(
        built["inputs"]["mounts"],
        json!([
            {"source": "./plugins/shop/", "target": "/wordpress/wp-content/plugins/shop"},
            {"source": "lib", "target": "/workspace/lib"},
        ])
    );
    assert_eq!(built["runtime"], json!({"wp": "7.1"}));
}

#[test]
fn benchmark_of_a_directory_activates_its_plugin() {
    let built = recipe(
        BuildKind::Bench,
        &json!({"source": "..", "pluginSlug": "shop", "iterations": 3}),
    );
    assert_eq!(
        built["inputs"]["extra_plugins"],
        json!([{"source": "..", "slug": "shop", "activate": true}])
    );
    assert_eq!(
        built["workflow"]["steps"][0]["args"],
        json!(["plugin-slug=shop", "iterations=3"])
    );
    // Without `pluginSlug`, the last part of the path must be a slug, and `..` is none.
    assert_eq!(
        paths(BuildKind::Bench, &json!({"source": ".."})),
        ["$.source", "$.pluginSlug"]
    );
}

#[test]
fn built_recipe_of_kind_template_without_given_steps_has_one_step_that_lists_the_plugins() {
    let built = recipe(BuildKind::Template, &json!({}));
    assert_eq!(
        built["workflow"]["steps"],
        json!([{"command": "wordpress.wp-cli", "args": ["command=plugin list"]}])
    );
    let steps = json!([{"command": "wordpress.run-php", "args": ["code=echo 1;"]}]);
    let built = recipe(BuildKind::Template, &json!({"steps": steps}));
    assert_eq!(built["workflow"]["steps"], steps);
}

#[test]
fn ability_may_be_given_as_a_name_beside_its_input_or_as_an_object_with_both() {
    let expected = json!(["name=example/report", "input={\"days\":7}"]);
    for options in [
        json!({"ability": "example/report", "input": {"days": 7}}),
        json!({"ability": {"name": "example/report", "input": {"days": 7}}}),
    ] {
        let built = recipe(BuildKind::GenericAbilityRuntimeRun, &options);
        assert_eq!(built["workflow"]["steps"][0]["args"], expected, "{options}");
    }
    for (options, path) in [
        (json!({}), "$.ability"),
        (json!({"ability": 1}), "$.ability"),
        (
            json!({"ability": {"name": "a/b", "input": {}}, "input": {}}),
            "$.ability.input",
        ),
    ] {
        assert_eq!(
            paths(BuildKind::GenericAbilityRuntimeRun, &options),
            [path],
            "{options}"
        );
    }
}

#[test]
fn runtime_package_is_imported_and_its_workflow_is_called_with_merged_inputs() {
    let built = recipe(
        BuildKind::RuntimePackageRun,
        &json!({
            "schema": "wp-codebox/runtime-package-task/v1",
            "package": {"slug": "writer", "source": "writer.json"},
            "workflow": {"id": "writer/run", "spec": {"input": {"tone": "dry", "topic": "dogs"}}},
            "input": {"topic": "cats"},
            "artifact_declarations": [{"name": "report", "path": "/workspace/report.json"}],
            "required_artifacts": ["report"],
        }),
    );
    assert_eq!(
        built["inputs"]["agent_bundles"],
        json!([{"source": "writer.json", "slug": "writer"}])
    );
    assert_eq!(
        built["workflow"]["steps"][0]["args"],
        json!([
            "name=writer/run",
            "input={\"tone\":\"dry\",\"topic\":\"cats\"}"
        ])
    );
    assert_eq!(
        built["artifacts"]["paths"],
        json!([{"name": "report", "path": "/workspace/report.json", "required": true}])
    );
    assert_eq!(
        paths(
            BuildKind::RuntimePackageRun,
            &json!({"package": {"slug": "a"}, "workflow": {}})
        ),
        ["$.package", "$.workflow"]
    );
}

#[test]
fn wrong_options_are_all_reported_with_the_names_that_the_caller_wrote() {
    assert_eq!(
        paths(
            BuildKind::Phpunit,
            &json!({
                "pluginSlug": {"a": 1},
                "colour": "red",
                "wp": "7.1",
                "wordpress_version": "7.0",
                "mounts": [{"source": "a"}],
                "secret_env": ["lower"],
            })
        ),
        [
            "$.pluginSlug",
            "$.colour",
            "$.wordpress_version",
            "$.mounts[0].target",
            "$.secret_env[0]"
        ]
    );
    assert_eq!(paths(BuildKind::Template, &json!([])), ["$"]);
}

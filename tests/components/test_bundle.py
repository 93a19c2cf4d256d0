"""Agent bundles (JSON definitions of agents), which a component imports before the agent runs."""

import json
import os

from world import component, run, shell

from harness import must

IMPORTER = """
function wp_agent_import_runtime_bundles( array $bundles, array $input = array() ): array {
	$rows = array();
	foreach ( $bundles as $row ) {
		$document = $row['bundle'] ?? json_decode( (string) file_get_contents( $row['source'] ), true );
		$rows[]   = 'bad' === $document['agent']
			? array( 'success' => false, 'error' => array( 'code' => 'x', 'message' => 'this one is bad' ) )
			: array( 'success' => true );
		$token = isset( $row['token_env'] ) ? getenv( $row['token_env'] ) : '';
		add_option( 'imported_' . $document['agent'], array( $row['slug'] ?? '', $row['on_conflict'], $row['owner_id'], substr( $token, 0, 8 ), $row['import_principal'] ?? array() ) );
	}
	return $rows;
}
"""


def file_of(bench, name, document):
    path = os.path.join(bench.directory, name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file)
    return path


def test_agent_bundles_are_imported_before_the_agent_starts(bench):
    one = component(bench, "importer", IMPORTER)
    bundles = [{"source": file_of(bench, "a.json", {"agent": "alpha"}), "slug": "alpha", "on_conflict": "skip", "owner_id": 7},
               {"bundle": {"agent": "beta"}, "import_principal": {"agent_id": "beta"}}]
    look = "wp option get imported_alpha --format=json && wp option get imported_beta --format=json && cat /run/codebox/staged/agent-bundles/0.json"
    ended = run(bench, shell(look), [one], agent_bundles=bundles).expect("no_op")
    for part in ('["alpha","skip",7,"",[]]', '["","upgrade",1,"",{"agent_id":"beta"}]', '{"agent": "alpha"}'):
        must(part in ended.output, f"{part} is not in {ended.output}")
    must(bench.directory.encode() not in ended.whole(), "a host path is in the bundle")


def test_run_with_an_agent_bundle_but_without_an_importer_is_refused(bench):
    bundles = [{"bundle": {"agent": "alpha"}}]
    plain = component(bench, "plain")
    for components in ([], [plain]):
        ended = run(bench, shell("true"), components, agent_bundles=bundles)
        ended.refused("wp_codebox_agent_bundle_importer_unavailable", "wp_agent_import_runtime_bundles")


def test_failed_agent_bundle_import_fails_the_run(bench):
    one = component(bench, "importer", IMPORTER)
    ended = run(bench, shell("echo ran >/workspace/plugin/new.txt"), [one], agent_bundles=[{"bundle": {"agent": "good"}}, {"bundle": {"agent": "bad"}}])
    ended.expect("failed", "wp_codebox_agent_bundle_import_failed")
    must("bundle 1: this one is bad" in ended.message and not ended.result["changed_files"], str(ended))
    throws = component(bench, "thrower", "function wp_agent_import_runtime_bundles() { throw new Error( 'no storage' ); }")
    ended = run(bench, shell("true"), [throws], agent_bundles=[{"bundle": {"agent": "good"}}]).expect("failed", "wp_codebox_agent_bundle_import_failed")
    must("no storage" in ended.message, ended.message)
    silent = component(bench, "silent", "function wp_agent_import_runtime_bundles() { return array(); }")
    run(bench, shell("true"), [silent], agent_bundles=[{"bundle": {"agent": "good"}}]).expect("failed", "wp_codebox_agent_bundle_import_failed")


def test_agent_bundle_token_must_be_a_run_secret_and_reaches_the_guest_as_placeholder(bench):
    one = component(bench, "importer", IMPORTER)
    bundles = [{"bundle": {"agent": "alpha"}, "token_env": "BUNDLE_TOKEN"}]
    run(bench, shell("true"), [one], agent_bundles=bundles).refused("wp_codebox_secret_invalid", "BUNDLE_TOKEN")
    run(bench, shell("true"), [one], agent_bundles=[{"bundle": {"agent": "alpha"}, "token_env": "PATH"}]).refused("wp_codebox_secret_invalid", "PATH")
    policy = {"network": {"allowHosts": ["example.org"]}, "filesystem": "readwrite-mounts", "secrets": "connector-scoped", "approvals": "never",
              "commands": ["command-agent-run"]}
    secrets = [{"env": "BUNDLE_TOKEN", "value": "value-that-stays-outside-0123", "hosts": ["example.org"]}]
    ended = run(bench, shell("wp option get imported_alpha --format=json"), [one], agent_bundles=bundles, secrets=secrets, policy=policy).expect("no_op")
    must('"codebox_' in ended.output, ended.output)
    must(b"value-that-stays-outside-0123" not in ended.whole(), "the value is in the bundle")


def test_agent_bundle_source_that_is_relative_missing_or_in_etc_is_refused(bench):
    one = component(bench, "importer", IMPORTER)
    for source, code in (("/etc/hostname", "wp_codebox_mount_denied"), (os.path.join(bench.directory, "none.json"), "wp_codebox_mount_source_invalid"),
                         ("a.json", "wp_codebox_input_invalid")):
        run(bench, shell("true"), [one], agent_bundles=[{"source": source}]).refused(code)
    run(bench, shell("true"), [one], agent_bundles=[{}]).refused("wp_codebox_input_invalid", "agent bundle 0")

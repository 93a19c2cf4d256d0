<?php
/**
 * What the plugin offers, as data.
 *
 * `contract_digest` names the whole set of schemas; the extension carries the digest of
 * the set it was built from, and the two must be equal. `cargo xtask generate` rewrites it.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

defined( 'ABSPATH' ) || exit;

return [
	'contract_digest' => '658f8d05500bd1a8261fc566ff105c4809378cf738d289604716926d092178a1',
	'abilities'       => [
		'wp-codebox/run-agent-task'           => 'agent-task/run.php',
		'wp-codebox/run-agent-task-batch'     => 'agent-task/batch.php',
		'wp-codebox/run-agent-task-fanout'    => 'agent-task/fanout.php',
		'wp-codebox/list-runs'                => 'run/list.php',
		'wp-codebox/get-run'                  => 'run/get.php',
		'wp-codebox/list-run-events'          => 'run/events.php',
		'wp-codebox/cancel-run'               => 'run/cancel.php',
		'wp-codebox/list-artifacts'           => 'artifact/list.php',
		'wp-codebox/get-artifact'             => 'artifact/get.php',
		'wp-codebox/inspect-artifact'         => 'artifact/inspect.php',
		'wp-codebox/apply-artifact-preflight' => 'artifact/preflight-apply.php',
		'wp-codebox/apply-approved-artifact'  => 'artifact/apply.php',
		'wp-codebox/discard-artifact'         => 'artifact/discard.php',
		'wp-codebox/stage-artifact-apply'     => 'artifact/stage.php',
		'wp-codebox/review-artifact'          => 'artifact/review.php',
		'wp-codebox/import-artifact-bundle'   => 'artifact/import.php',
		'wp-codebox/reimport-artifact-bundle' => 'artifact/reimport.php',
		'wp-codebox/export-artifact-bundle'   => 'artifact/export.php',
		'wp-codebox/get-artifact-diff'        => 'artifact/diff.php',
		'wp-codebox/replay-artifact'          => 'artifact/replay.php',
		'wp-codebox/list-audit-records'       => 'audit/list.php',
		'wp-codebox/browser-connector-request' => 'connector/request.php',
		'wp-codebox/execute-browser-provider-request' => 'connector/provider-request.php',
	],
];

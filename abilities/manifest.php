<?php
/**
 * What the plugin offers, as data.
 *
 * `contract_digest` names the whole set of schemas; the extension carries the digest of
 * the set it was built from, and the two must be equal. `cargo xtask schemas` rewrites it.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

defined( 'ABSPATH' ) || exit;

return [
	'contract_digest' => '8ded81c2c7810af26eb6d25d3c0841d789567c34bbefb8b1f3818e33b3186997',
	'abilities'       => [
		'wp-codebox/run-agent-task'           => 'agent-task/run.php',
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
	],
];

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
	'contract_digest' => '1c8f7344cce8f61ae726a824c903886d1c31a7ae4b209a729bb7d059b1bafec1',
	'abilities'       => [
		'wp-codebox/run-agent-task'           => 'agent-task/run.php',
		'wp-codebox/list-artifacts'           => 'artifact/list.php',
		'wp-codebox/get-artifact'             => 'artifact/get.php',
		'wp-codebox/inspect-artifact'         => 'artifact/inspect.php',
		'wp-codebox/apply-artifact-preflight' => 'artifact/preflight-apply.php',
		'wp-codebox/apply-approved-artifact'  => 'artifact/apply.php',
		'wp-codebox/discard-artifact'         => 'artifact/discard.php',
	],
];

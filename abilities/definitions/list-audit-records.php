<?php
/**
 * Definition of the WordPress ability `wp-codebox/list-audit-records`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'List audit records', 'codebox' ),
	'description'   => __( 'Reads the audit log of this site and verifies its hash chain.', 'codebox' ),
	'input_schema'  => 'audit-record-list-input',
	'output_schema' => 'audit-record-list',
	'capability'    => Capabilities::REVIEW,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->audit->list( $input ),
	'annotations'   => [
		'readonly'    => true,
		'destructive' => false,
		'idempotent'  => true,
	],
];

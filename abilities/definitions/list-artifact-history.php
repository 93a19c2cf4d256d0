<?php
/**
 * Definition of the WordPress ability `wp-codebox/list-artifact-history`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'List the history of artifacts', 'codebox' ),
	'description'   => __( 'Lists decisions, applies and roll backs of all bundles of this site from the audit log, newest first.', 'codebox' ),
	'input_schema'  => 'artifact-history-input',
	'output_schema' => 'artifact-history',
	'capability'    => Capabilities::REVIEW,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->artifacts->history( $input ),
	'annotations'   => [
		'readonly'    => true,
		'destructive' => false,
		'idempotent'  => true,
	],
];

<?php
/**
 * Definition of the WordPress ability `wp-codebox/download-approved-files`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Download approved files', 'codebox' ),
	'description'   => __( 'Returns the approved files of a verified bundle, as a patch or as a zip archive of their new contents.', 'codebox' ),
	'input_schema'  => 'approved-files-download-input',
	'output_schema' => 'approved-files-download',
	'capability'    => Capabilities::REVIEW,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->downloads->answer( $input ),
	'annotations'   => [
		'readonly'    => true,
		'destructive' => false,
		'idempotent'  => true,
	],
];

<?php
/**
 * Definition of the WordPress ability `wp-codebox/normalize-browser-artifact-bundle`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Check files from a browser', 'codebox' ),
	'description'   => __( 'Checks documents that a browser made and returns them in the standard format, with sizes and digests. Stores nothing.', 'codebox' ),
	'input_schema'  => 'normalize-browser-artifact-bundle-input',
	'output_schema' => 'browser-artifact-bundle-normalization',
	'capability'    => Capabilities::RUN,
	'execute'       => static fn( Services $services, array $input ): array => $services->browser_documents->normalize( $input ),
	'annotations'   => [
		// False, although nothing is written: WordPress accepts a read-only ability only as GET, whose address is too short for files.
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => true,
	],
];

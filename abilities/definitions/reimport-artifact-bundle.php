<?php
/**
 * Definition of the WordPress ability `wp-codebox/reimport-artifact-bundle`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Connector\Scope;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Import a bundle again', 'codebox' ),
	'description'   => __( 'Imports a known bundle again and replaces a damaged copy.', 'codebox' ),
	'input_schema'  => 'artifact-reimport-input',
	'output_schema' => 'artifact-result-envelope',
	'capability'    => Capabilities::REVIEW,
	'scope'         => Scope::WriteArtifacts->value,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->imports->reimport( $input, $authority ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => true,
		// False: if destructive and idempotent were both true, core would accept only DELETE with a query string.
		'idempotent'  => false,
	],
];

<?php
/**
 * Definition of the WordPress ability `wp-codebox/persist-browser-artifact`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Capabilities;
use WPCodebox\Connector\Scope;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Keep files from a browser', 'codebox' ),
	'description'   => __( 'Stores files that a browser uploaded as a bundle. The host computes the change from its own copy of the code; the bundle is marked as coming from a browser, and applying it needs a further confirmation.', 'codebox' ),
	'input_schema'  => 'persist-browser-artifact-input',
	'output_schema' => 'browser-artifact-persistence',
	'capability'    => Capabilities::REVIEW,
	'scope'         => Scope::WriteArtifacts->value,
	'execute'       => static fn( Services $services, array $input ): array => $services->browser_artifacts->persist( $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => true,
	],
];

<?php
/**
 * Definition of the WordPress ability `wp-codebox/hydrate-browser-blueprint-ref`.
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
	'label'         => __( 'Read a blueprint of a browser session', 'codebox' ),
	'description'   => __( 'Returns the blueprint of a browser session to the user who owns it.', 'codebox' ),
	'input_schema'  => 'hydrate-browser-blueprint-ref-input',
	'output_schema' => 'browser-blueprint-hydration',
	'capability'    => Capabilities::RUN,
	'scope'         => Scope::CreateBrowserSession->value,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->browser->hydration->hydrate( $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => true,
	],
];

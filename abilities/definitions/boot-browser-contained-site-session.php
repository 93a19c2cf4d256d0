<?php
/**
 * Definition of the WordPress ability `wp-codebox/boot-browser-contained-site-session`.
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
	'label'         => __( 'Start a site in the browser', 'codebox' ),
	'description'   => __( 'Returns the configuration with which a page starts a site in the browser; fails when the site cannot be recovered.', 'codebox' ),
	'input_schema'  => 'boot-browser-contained-site-session-input',
	'output_schema' => 'browser-contained-site-boot-result',
	'capability'    => Capabilities::RUN,
	'scope'         => Scope::CreateBrowserSession->value,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->browser->sites->boot( $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => true,
	],
];

<?php
/**
 * Definition of the WordPress ability `wp-codebox/create-browser-playground-session`.
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
	'label'         => __( 'Create a browser session', 'codebox' ),
	'description'   => __( 'Returns a document with which a page starts a disposable WordPress in the browser of the user. Nothing runs on this host.', 'codebox' ),
	'input_schema'  => 'create-browser-playground-session-input',
	'output_schema' => 'browser-session-product-dto',
	'capability'    => Capabilities::RUN,
	'scope'         => Scope::CreateBrowserSession->value,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->browser->create->create( $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => false,
	],
];

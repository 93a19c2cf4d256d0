<?php
/**
 * Definition of the WordPress ability `wp-codebox/open-browser-contained-site`.
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
	'label'         => __( 'Open a site in the browser', 'codebox' ),
	'description'   => __( 'Returns what a page needs to start a site in the browser again, or why the site cannot be recovered.', 'codebox' ),
	'input_schema'  => 'open-browser-contained-site-input',
	'output_schema' => 'browser-contained-site-open',
	'capability'    => Capabilities::RUN,
	'scope'         => Scope::CreateBrowserSession->value,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->browser->sites->open( $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => true,
	],
];

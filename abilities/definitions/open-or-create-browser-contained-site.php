<?php
/**
 * Definition of the WordPress ability `wp-codebox/open-or-create-browser-contained-site`.
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
	'label'         => __( 'Open or create a site in the browser', 'codebox' ),
	'description'   => __( 'Opens a site in the browser or creates a new one. The field "mode" says which: open-only, open-or-create or prepare-new.', 'codebox' ),
	'input_schema'  => 'open-or-create-browser-contained-site-input',
	'output_schema' => 'browser-contained-site-open-or-create',
	'capability'    => Capabilities::RUN,
	'scope'         => Scope::CreateBrowserSession->value,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->browser->sites->open_or_create( $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => false,
	],
];

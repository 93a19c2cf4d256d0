<?php
/**
 * Definition of the WordPress ability `wp-codebox/snapshot-browser-contained-site`.
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
	'label'         => __( 'Describe a snapshot of a site in the browser', 'codebox' ),
	'description'   => __( 'Says how the contents of a site in the browser are captured. They are in the browser, so this host captures nothing.', 'codebox' ),
	'input_schema'  => 'snapshot-browser-contained-site-input',
	'output_schema' => 'browser-contained-site-snapshot',
	'capability'    => Capabilities::RUN,
	'scope'         => Scope::CreateBrowserSession->value,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->browser->exports->snapshot( $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => true,
	],
];

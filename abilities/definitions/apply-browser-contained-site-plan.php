<?php
/**
 * Definition of the WordPress ability `wp-codebox/apply-browser-contained-site-plan`.
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
	'label'         => __( 'Preview a plan of a site in the browser', 'codebox' ),
	'description'   => __( 'Shows what an apply plan of a site in the browser would change. Applies nothing: only an approved bundle changes this host.', 'codebox' ),
	'input_schema'  => 'apply-browser-contained-site-plan-input',
	'output_schema' => 'browser-contained-site-apply-result',
	'capability'    => Capabilities::RUN,
	'scope'         => Scope::CreateBrowserSession->value,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->browser->exports->apply( $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => true,
	],
];

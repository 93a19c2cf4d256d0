<?php
/**
 * Definition of the WordPress ability `wp-codebox/plan-browser-contained-site-apply`.
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
	'label'         => __( 'Plan changes of a site in the browser', 'codebox' ),
	'description'   => __( 'Lists the changes of a site in the browser as a plan. Changes nothing.', 'codebox' ),
	'input_schema'  => 'plan-browser-contained-site-apply-input',
	'output_schema' => 'browser-contained-site-apply-plan',
	'capability'    => Capabilities::RUN,
	'scope'         => Scope::CreateBrowserSession->value,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->browser->exports->plan( $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => true,
	],
];

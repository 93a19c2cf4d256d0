<?php
/**
 * Definition of the WordPress ability `wp-codebox/replay-browser-viewport`.
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
	'label'         => __( 'Take a picture of an archived site', 'codebox' ),
	'description'   => __( 'Checks the request and answers with the status "unsupported": sandboxes of this version do not restore archives of sites.', 'codebox' ),
	'input_schema'  => 'replay-browser-viewport-input',
	'output_schema' => 'browser-viewport-replay-result',
	'capability'    => Capabilities::RUN,
	'scope'         => Scope::CreateBrowserSession->value,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->browser->replay->replay( $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => true,
	],
];

<?php
/**
 * Definition of the WordPress ability `wp-codebox/preview-boot-ref`.
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
	'label'         => __( 'Get the reference of a preview', 'codebox' ),
	'description'   => __( 'Returns configuration and blueprint reference of a site in the browser; fails when the site cannot be recovered.', 'codebox' ),
	'input_schema'  => 'preview-boot-ref-input',
	'output_schema' => 'preview-boot-ref',
	'capability'    => Capabilities::RUN,
	'scope'         => Scope::CreateBrowserSession->value,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->browser->sites->boot_ref( $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => true,
	],
];

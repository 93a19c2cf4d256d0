<?php
/**
 * Definition of the WordPress ability `wp-codebox/preview-reuse-decision`.
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
	'label'         => __( 'Decide whether a preview is used again', 'codebox' ),
	'description'   => __( 'Says whether a page can go on with a site in the browser, load it again, or needs a new one. Changes nothing.', 'codebox' ),
	'input_schema'  => 'preview-reuse-decision-input',
	'output_schema' => 'preview-reuse-decision',
	'capability'    => Capabilities::RUN,
	'scope'         => Scope::CreateBrowserSession->value,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->browser->sites->decide( $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => true,
	],
];

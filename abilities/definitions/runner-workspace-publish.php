<?php
/**
 * Definition of the WordPress ability `wp-codebox/runner-workspace-publish`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Publish a runner workspace', 'codebox' ),
	'description'   => __( 'Lets the backend that is set up on this site publish the change of a runner workspace as a branch or pull request. Without a backend nothing is published.', 'codebox' ),
	'input_schema'  => 'runner-workspace-publish-input',
	'output_schema' => 'runner-workspace-publication-result',
	'capability'    => Capabilities::APPLY,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->workspaces->publish( $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => true,
		'idempotent'  => false,
	],
];

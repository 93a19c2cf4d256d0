<?php
/**
 * Definition of the WordPress ability `wp-codebox/replay-artifact`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Replay an artifact', 'codebox' ),
	'description'   => __( 'Runs the task of a bundle again in a new sandbox, against this site\'s current code, and lists the differences. The site is not changed.', 'codebox' ),
	'input_schema'  => 'artifact-replay-input',
	'output_schema' => 'artifact-replay',
	'capability'    => Capabilities::RUN,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->replays->replay( $input, $authority ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => false,
	],
];

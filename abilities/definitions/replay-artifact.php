<?php
/**
 * Ability wp-codebox/replay-artifact.
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
	'description'   => __( 'Runs the task of a bundle again in a fresh sandbox, against the code this site has now, and says what differs. The site is not touched.', 'codebox' ),
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

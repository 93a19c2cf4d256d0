<?php
/**
 * Definition of the WordPress ability `wp-codebox/review-artifact`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Review an artifact', 'codebox' ),
	'description'   => __( 'Approves a change (which also applies it and needs the apply capability), rejects it, or requests changes. A damaged bundle can be rejected too.', 'codebox' ),
	'input_schema'  => 'artifact-review-input',
	'output_schema' => 'artifact-review-result',
	'capability'    => Capabilities::REVIEW,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->reviews->review( $input, $authority ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => true,
		'idempotent'  => false,
	],
];

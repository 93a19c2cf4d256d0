<?php
/**
 * Definition of the WordPress ability `wp-codebox/cancel-run`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Cancel a run', 'codebox' ),
	'description'   => __( 'Requests cancellation of a run; the changes made so far are stored as a bundle.', 'codebox' ),
	'input_schema'  => 'run-reference-input',
	'output_schema' => 'run-cancellation',
	'capability'    => [ Capabilities::RUN, Capabilities::REVIEW ],
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->registry->cancel( $input, $authority ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => true,
		// False: if destructive and idempotent were both true, core would accept only DELETE with a query string.
		'idempotent'  => false,
	],
];

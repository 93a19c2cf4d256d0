<?php
/**
 * Ability categories.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

defined( 'ABSPATH' ) || exit;

return [
	'wp-codebox' => [
		'label'       => __( 'Codebox', 'codebox' ),
		'description' => __( 'Runs coding agents in a disposable sandbox and reviews and applies what they changed.', 'codebox' ),
	],
];

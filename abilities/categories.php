<?php
/**
 * Categories of this plugin's abilities, by slug, as `wp_register_ability_category()` takes them.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

defined( 'ABSPATH' ) || exit;

return [
	'wp-codebox' => [
		'label'       => __( 'Codebox', 'codebox' ),
		'description' => __( 'Runs coding agents in disposable sandboxes, and reviews and applies their changes.', 'codebox' ),
	],
];

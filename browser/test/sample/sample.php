<?php
/**
 * Plugin Name: Sample
 * Version: 1.0
 */

add_action(
	'wp_enqueue_scripts',
	static function () {
		wp_enqueue_style( 'sample', plugins_url( 'sample.css', __FILE__ ), [], '1' );
		wp_enqueue_script( 'sample', plugins_url( 'sample.js', __FILE__ ), [], '1', true );
	}
);
add_action(
	'wp_footer',
	static function () {
		echo '<p id="sample-banner">Banner of the sample</p>';
		echo '<img id="sample-image" alt="" src="' . esc_url( plugins_url( 'dot.png', __FILE__ ) ) . '">';
	}
);
add_action(
	'rest_api_init',
	static function () {
		register_rest_route(
			'sample/v1',
			'/who',
			[
				'callback'            => static function () {
					return [ 'user' => wp_get_current_user()->user_login ];
				},
				'permission_callback' => '__return_true',
			]
		);
	}
);

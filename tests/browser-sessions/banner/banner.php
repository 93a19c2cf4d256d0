<?php
/**
 * Plugin Name: Banner
 * Description: Prints a banner at the top of each page.
 * Version: 1.0
 */

defined( 'ABSPATH' ) || exit;

add_action(
	'wp_enqueue_scripts',
	static function () {
		wp_enqueue_style( 'banner', plugins_url( 'banner.css', __FILE__ ), array(), '1.0' );
		wp_enqueue_script( 'banner', plugins_url( 'banner.js', __FILE__ ), array(), '1.0', true );
	}
);
add_action(
	'wp_body_open',
	static function () {
		echo '<p class="banner">Banner of the parent</p>';
	}
);

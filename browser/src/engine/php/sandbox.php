<?php
/**
 * Must-use plugin of every sandbox in a browser: no network, no mail, and messages of fatal errors on the page.
 */

declare(strict_types=1);

// PHP in a browser has no network. Without this answer each request would wait for its timeout.
add_filter(
	'pre_http_request',
	static function () {
		return new WP_Error( 'http_request_not_executed', 'This WordPress runs in a browser and has no network.' );
	},
	PHP_INT_MAX
);
add_filter( 'pre_wp_mail', '__return_false', PHP_INT_MAX );
// Avatars come from another host.
add_filter(
	'pre_option_show_avatars',
	static function () {
		return '0';
	},
	PHP_INT_MAX
);
// Without this, the login screen asks for a confirmation of the administrator's address after some days.
add_filter( 'admin_email_check_interval', '__return_zero' );
// A script of WordPress loads the emoji script from an address of the sandbox, which the real server does not have.
$codebox_no_emoji = static function () {
	remove_action( 'wp_head', 'print_emoji_detection_script', 7 );
	remove_action( 'admin_print_scripts', 'print_emoji_detection_script' );
	remove_action( 'embed_head', 'print_emoji_detection_script' );
};
add_action( 'init', $codebox_no_emoji );
add_action( 'admin_init', $codebox_no_emoji );
// The Customizer previews no address with /wp-content/ in it, and the whole sandbox is below such an address.
add_action(
	'customize_controls_enqueue_scripts',
	static function () {
		wp_add_inline_script(
			'customize-controls',
			'wp.customize.bind( "ready", function () {
				var api = wp.customize, home = api.settings.url.home.replace( /\\/?$/, "/" );
				api.previewer.previewUrl.setter( function ( to ) {
					return to && 0 === ( to + "/" ).indexOf( home ) && ! /^wp-(admin|includes|content|login\\.php)(\\/|$)/.test( to.slice( home.length ) ) ? to : null;
				} );
				api.previewer.previewUrl.set( api.settings.url.preview );
				api.previewer.refresh();
			} );'
		);
	}
);
// The visitor sees the error itself. The recovery mode of WordPress would send it by mail.
add_filter( 'recovery_mode_email', '__return_empty_array', PHP_INT_MAX );
// On pages, WordPress itself shows fatal errors in a readable form, but only when PHP has printed nothing.
if ( ! empty( $_SERVER['REQUEST_URI'] ) ) {
	ini_set( 'display_errors', '0' );
}
register_shutdown_function(
	static function () {
		$error = error_get_last();
		if ( null === $error || ! ( $error['type'] & ( E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR ) ) ) {
			return;
		}
		$text = sprintf( '%s in %s on line %d', $error['message'], $error['file'], $error['line'] );
		if ( function_exists( 'post_message_to_js' ) ) {
			post_message_to_js( (string) json_encode( [ 'wp_codebox_problem' => $text ] ) );
		}
	}
);
add_filter(
	'wp_php_error_message',
	static function ( $message, $error ) {
		if ( ! is_array( $error ) || ! isset( $error['message'] ) ) {
			return $message;
		}
		return $message . '<pre style="white-space:pre-wrap">' . htmlspecialchars( sprintf( '%s in %s on line %d', $error['message'], $error['file'] ?? '', $error['line'] ?? 0 ), ENT_QUOTES ) . '</pre>';
	},
	PHP_INT_MAX,
	2
);

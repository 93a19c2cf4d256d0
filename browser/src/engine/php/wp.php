<?php
/**
 * A subset of WP-CLI for sessions without it. Arguments: $argv, without `wp`. An unknown command ends with
 * status 90, which the terminal explains.
 */
$codebox_words = [];
$codebox_flags = [];
foreach ( $argv as $codebox_word ) {
	if ( preg_match( '/^--([\w-]+)(?:=(.*))?$/s', $codebox_word, $codebox_match ) ) {
		$codebox_flags[ $codebox_match[1] ] = $codebox_match[2] ?? true;
	} else {
		$codebox_words[] = $codebox_word;
	}
}
unset( $codebox_flags['path'], $codebox_flags['allow-root'], $codebox_flags['no-color'] );
$codebox_format = $codebox_flags['format'] ?? 'table';
unset( $codebox_flags['format'] );
// Refuses options that this subset does not implement, instead of ignoring them.
if ( $codebox_flags || ! in_array( $codebox_format, [ 'table', 'json' ], true ) ) {
	exit( 90 );
}
define( 'WP_ADMIN', true );
require '/wordpress/wp-load.php';
require_once ABSPATH . 'wp-admin/includes/plugin.php';
wp_set_current_user( 1 );

$codebox_print = static function ( array $rows ) use ( $codebox_format ) {
	if ( 'json' === $codebox_format ) {
		echo json_encode( $rows ), "\n";
		return;
	}
	foreach ( $rows ? array_merge( [ array_combine( array_keys( $rows[0] ), array_keys( $rows[0] ) ) ], $rows ) : [] as $row ) {
		echo implode( "\t", $row ), "\n";
	}
};
$codebox_fail  = static function ( $text ) {
	fwrite( STDERR, 'Error: ' . $text . "\n" );
	exit( 1 );
};
$codebox_main  = static function ( $slug ) {
	$slug = (string) $slug;
	foreach ( array_keys( get_plugins() ) as $file ) {
		if ( $file === $slug || dirname( $file ) === $slug || basename( $file, '.php' ) === $slug && '.' === dirname( $file ) ) {
			return $file;
		}
	}
	return '';
};
$codebox_value = static function ( $value ) {
	echo is_scalar( $value ) ? $value : json_encode( $value ), "\n";
};

list( $codebox_noun, $codebox_verb, $codebox_one, $codebox_two ) = array_pad( $codebox_words, 4, null );
switch ( trim( $codebox_noun . ' ' . $codebox_verb ) ) {
	case 'core version':
		echo get_bloginfo( 'version' ), "\n";
		break;
	case 'option get':
		$codebox_option = get_option( (string) $codebox_one, null );
		null === $codebox_option ? $codebox_fail( "Could not get '$codebox_one' option. Does it exist?" ) : $codebox_value( $codebox_option );
		break;
	case 'option update':
		update_option( (string) $codebox_one, $codebox_two );
		echo "Success: Updated '$codebox_one' option.\n";
		break;
	case 'option delete':
		delete_option( (string) $codebox_one ) || $codebox_fail( "Could not delete '$codebox_one' option. Does it exist?" );
		echo "Success: Deleted '$codebox_one' option.\n";
		break;
	case 'plugin list':
		$codebox_rows = [];
		foreach ( get_plugins() as $codebox_file => $codebox_plugin ) {
			$codebox_rows[] = [
				'name'    => '.' === dirname( $codebox_file ) ? basename( $codebox_file, '.php' ) : dirname( $codebox_file ),
				'status'  => is_plugin_active( $codebox_file ) ? 'active' : 'inactive',
				'version' => $codebox_plugin['Version'],
			];
		}
		$codebox_print( $codebox_rows );
		break;
	case 'plugin activate':
		$codebox_file = $codebox_main( $codebox_one );
		'' !== $codebox_file || $codebox_fail( "The '$codebox_one' plugin could not be found." );
		$codebox_error = activate_plugin( $codebox_file );
		! is_wp_error( $codebox_error ) || $codebox_fail( $codebox_error->get_error_message() );
		echo "Success: Activated '$codebox_one'.\n";
		break;
	case 'plugin deactivate':
		$codebox_file = $codebox_main( $codebox_one );
		'' !== $codebox_file || $codebox_fail( "The '$codebox_one' plugin could not be found." );
		deactivate_plugins( $codebox_file );
		echo "Success: Deactivated '$codebox_one'.\n";
		break;
	case 'theme list':
		$codebox_rows = [];
		foreach ( wp_get_themes() as $codebox_slug => $codebox_theme ) {
			$codebox_rows[] = [
				'name'    => $codebox_slug,
				'status'  => get_stylesheet() === $codebox_slug ? 'active' : 'inactive',
				'version' => $codebox_theme->get( 'Version' ),
			];
		}
		$codebox_print( $codebox_rows );
		break;
	case 'theme activate':
		wp_get_theme( (string) $codebox_one )->exists() || $codebox_fail( "The '$codebox_one' theme could not be found." );
		switch_theme( (string) $codebox_one );
		echo "Success: Switched to '$codebox_one'.\n";
		break;
	case 'user list':
		$codebox_print(
			array_map(
				static function ( $user ) {
					return [
						'ID'         => $user->ID,
						'user_login' => $user->user_login,
						'roles'      => implode( ',', $user->roles ),
					];
				},
				get_users()
			)
		);
		break;
	case 'post list':
		$codebox_print(
			array_map(
				static function ( $post ) {
					return [
						'ID'          => $post->ID,
						'post_title'  => $post->post_title,
						'post_status' => $post->post_status,
					];
				},
				get_posts( [ 'numberposts' => 100 ] )
			)
		);
		break;
	case 'cache flush':
		wp_cache_flush();
		echo "Success: The cache was flushed.\n";
		break;
	case 'rewrite flush':
		flush_rewrite_rules();
		echo "Success: Rewrite rules flushed.\n";
		break;
	default:
		if ( 'eval' !== $codebox_noun || null === $codebox_verb ) {
			exit( 90 );
		}
		eval( $codebox_verb );
}

<?php
/**
 * Converts the guest's site to a multisite network with subdirectories and creates its further sites.
 *
 * Request: {name, title, sites: [{path, title}]}. Runs twice: first on a single site, where it creates the
 * network and writes the constants that wp-config.php loads from then on; then on the network, where it
 * creates the sites. Prints {name, network, sites: [{id, path}]}.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

defined( 'ABSPATH' ) || exit;

/**
 * Ends the program with an error.
 *
 * @param string $reason Reason why the network could not be created.
 */
function no_network( string $reason ): never {
	fwrite( STDERR, "the network cannot be made: $reason\n" );
	exit( 1 );
}

require __DIR__ . '/exit-guard.php';
wp_set_current_user( 1 );
$codebox_doing = 'the network was made';
$codebox_host = (string) wp_parse_url( home_url(), PHP_URL_HOST );
if ( ! is_multisite() ) {
	global $wpdb;
	require_once ABSPATH . 'wp-admin/includes/upgrade.php';
	require_once ABSPATH . 'wp-admin/includes/network.php';
	foreach ( $wpdb->tables( 'ms_global' ) as $codebox_table => $codebox_name ) {
		$wpdb->$codebox_table = $codebox_name;
	}
	install_network();
	$codebox_email = (string) get_option( 'admin_email' );
	$codebox_made  = populate_network( 1, $codebox_host, $codebox_email, $codebox_question['title'], '/', false );
	if ( is_wp_error( $codebox_made ) ) {
		no_network( $codebox_made->get_error_message() );
	}
	$codebox_constants = array(
		'WP_ALLOW_MULTISITE'   => true,
		'MULTISITE'            => true,
		'SUBDOMAIN_INSTALL'    => false,
		'DOMAIN_CURRENT_SITE'  => $codebox_host,
		'PATH_CURRENT_SITE'    => '/',
		'SITE_ID_CURRENT_SITE' => 1,
		'BLOG_ID_CURRENT_SITE' => 1,
	);
	$codebox_text      = "<?php\n";
	foreach ( $codebox_constants as $codebox_name => $codebox_value ) {
		$codebox_text .= 'define( ' . var_export( $codebox_name, true ) . ', ' . var_export( $codebox_value, true ) . " );\n";
	}
	if ( false === file_put_contents( WP_CONTENT_DIR . '/codebox-network.php', $codebox_text ) ) {
		no_network( 'its constants could not be written' );
	}
	$codebox_doing = '';
	echo wp_json_encode(
		array(
			'name'    => $codebox_question['name'],
			'network' => 1,
			'sites'   => array(),
		)
	), "\n";
	exit( 0 );
}

$codebox_sites = array();
foreach ( $codebox_question['sites'] as $codebox_site ) {
	$codebox_id = wp_insert_site(
		array(
			'domain'     => $codebox_host,
			'path'       => trailingslashit( $codebox_site['path'] ),
			'title'      => $codebox_site['title'],
			'network_id' => 1,
			'user_id'    => 1,
		)
	);
	if ( is_wp_error( $codebox_id ) ) {
		no_network( "{$codebox_site['path']}: " . $codebox_id->get_error_message() );
	}
	$codebox_sites[] = array(
		'id'   => $codebox_id,
		'path' => get_site( $codebox_id )->path,
	);
}
$codebox_doing = '';
echo wp_json_encode(
	array(
		'name'    => $codebox_question['name'],
		'network' => get_current_network_id(),
		'sites'   => $codebox_sites,
	)
), "\n";

<?php
/**
 * Lists, installs, activates and deletes themes of the guest's site.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/users.php';
require_once __DIR__ . '/downloads.php';

/**
 * Performs the requested action: lists, installs, activates or deletes themes. `switch` is `activate`.
 *
 * @param Arguments $arguments Arguments action, theme, slug, activate.
 * @return array<string,mixed> `wp-codebox/wordpress-theme-setup/v1`.
 */
function theme_setup( Arguments $arguments ): array {
	wp_set_current_user( Users::administrator()->ID );
	$slug       = $arguments->first( 'theme', 'slug' );
	$action     = $arguments->word( 'action', array( 'install', 'switch', 'list', 'activate', 'delete' ), '' === $slug ? 'list' : 'activate' );
	$operations = array();
	$document   = array(
		'schema' => 'wp-codebox/wordpress-theme-setup/v1',
		'action' => $action,
		'status' => 'ok',
		'target' => null,
	);
	$error      = null;
	wp_clean_themes_cache();
	try {
		$document = array_merge( $document, 'list' === $action ? array( 'themes' => array_map( theme_row( ... ), array_values( wp_get_themes( array( 'errors' => null ) ) ) ) ) : theme_changed( $slug, $action, $arguments, $operations ) );
	} catch ( Refusal $refusal ) {
		$error = $refusal;
	}
	$document += array(
		'themes'       => array(),
		'operations'   => $operations,
		'errors'       => array(),
		'artifactRefs' => array(),
	);
	return null === $error ? $document : throw $error->with( $document );
}

/**
 * Performs an action on a theme.
 *
 * @param string                     $slug       Directory of the theme.
 * @param string                     $action     Action: install, switch, activate or delete.
 * @param Arguments                  $arguments  Argument activate.
 * @param list<array<string,string>> $operations Receives what was done: {operation, theme, status}.
 * @return array<string,mixed> Members of the result document.
 */
function theme_changed( string $slug, string $action, Arguments $arguments, array &$operations ): array {
	if ( '' === $slug ) {
		throw Refusal::input( 'name a theme: theme=DIRECTORY below wp-content/themes' );
	}
	$add   = static function ( string $operation, string $status ) use ( &$operations, $slug ): void {
		$operations[] = array(
			'operation' => $operation,
			'theme'     => $slug,
			'status'    => $status,
		);
	};
	$theme = wp_get_theme( $slug );
	if ( 'install' === $action ) {
		$there = $theme->exists();
		if ( ! $there ) {
			downloaded( 'theme', $slug );
			wp_clean_themes_cache();
			$theme = wp_get_theme( $slug );
		}
		$add( 'install', $there ? 'unchanged' : 'installed' );
	}
	if ( ! $theme->exists() ) {
		throw new Refusal( 'theme-missing', sprintf( 'there is no theme %s below wp-content/themes; mount its directory there', Arguments::shown( $slug ) ) );
	}
	if ( $theme->errors() ) {
		throw new Refusal( 'theme-broken', sprintf( 'the theme %s is broken: %s', $slug, wp_strip_all_tags( $theme->errors()->get_error_message() ) ) );
	}
	if ( 'delete' === $action ) {
		require_once ABSPATH . 'wp-admin/includes/file.php';
		require_once ABSPATH . 'wp-admin/includes/theme.php';
		$result = get_stylesheet() === $slug || get_template() === $slug ? new \WP_Error( 'active', 'it is active' ) : delete_theme( $slug );
		if ( true !== $result ) {
			throw new Refusal( 'theme-refused', "$slug was not deleted" . ( is_wp_error( $result ) ? ': ' . wp_strip_all_tags( $result->get_error_message() ) : '' ) );
		}
		$add( 'delete', 'deleted' );
		$row = array(
			'theme'     => $slug,
			'installed' => false,
			'active'    => false,
		);
	} else {
		if ( $arguments->truth( 'activate', 'install' !== $action ) ) {
			switch_theme( $slug );
			if ( get_stylesheet() !== $slug ) {
				throw new Refusal( 'theme-refused', "WordPress did not switch to $slug" );
			}
			$add( 'switch', 'switched' );
		}
		$row = theme_row( wp_get_theme( $slug ) );
	}
	return array(
		'target' => $row,
		'themes' => array( $row ),
	) + $row;
}

/**
 * Describes a theme for results.
 *
 * @param \WP_Theme $theme Theme to describe.
 * @return array<string,mixed>
 */
function theme_row( \WP_Theme $theme ): array {
	return array(
		'theme'     => $theme->get_stylesheet(),
		'name'      => cut( (string) $theme->get( 'Name' ), 200 ),
		'version'   => cut( (string) $theme->get( 'Version' ), 100 ),
		'template'  => $theme->get_template(),
		'block'     => $theme->is_block_theme(),
		'installed' => true,
		'active'    => get_stylesheet() === $theme->get_stylesheet(),
		'broken'    => false !== $theme->errors(),
	);
}

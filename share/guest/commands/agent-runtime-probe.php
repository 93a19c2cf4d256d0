<?php
/**
 * Command `wp-codebox.agent-runtime-probe`: reports whether a component that runs agents is ready.
 *
 * `component` names the plugin, `PATH[,slug=SLUG,pluginFile=FILE,loadAs=plugin|mu-plugin]`. The command reads
 * the state of the guest's WordPress; it installs and activates nothing.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/users.php';
require __DIR__ . '/lib/plugins.php';
require __DIR__ . '/lib/wordpress.php';

finish(
	static function ( Arguments $arguments ): array {
		wp_set_current_user( Users::administrator()->ID );
		$component = $arguments->first( 'component' );
		$providers = $arguments->texts( 'provider-plugin-slugs' );
		foreach ( contracts( $arguments->text( 'provider-plugin-contracts-json', '[]' ) ) as $slug ) {
			$providers[] = $slug;
		}
		$rows = array_map( static fn ( string $slug ): array => probed( $slug, array() ), array_values( array_unique( $providers ) ) );
		$own  = '' === $component ? null : component( $component );
		$all  = array_filter( array( $own, ...$rows ) );

		$missing = array_values( array_column( array_filter( $all, static fn ( array $row ): bool => ! $row['active'] ), 'slug' ) );
		$ready   = array() === $missing;
		return array(
			'command'         => 'wp-codebox.agent-runtime-probe',
			'status'          => $ready ? 'ready' : 'missing',
			'ready'           => $ready,
			'component'       => $own,
			'providerPlugins' => $rows,
			'missing'         => $missing,
			'abilities'       => function_exists( 'wp_get_abilities' ) ? count( wp_get_abilities() ) : null,
			'agents'          => function_exists( 'wp_get_agents' ) ? array_slice( array_map( 'strval', array_keys( (array) wp_get_agents() ) ), 0, 100 ) : null,
			'wordpress'       => get_bloginfo( 'version' ),
			'php'             => PHP_VERSION,
		);
	}
);

/**
 * Describes the component that the argument names.
 *
 * @param string $text Value of the argument.
 * @return array<string,mixed>
 * @throws Refusal When the value has an unknown member.
 */
function component( string $text ): array {
	$parts   = array_map( 'trim', explode( ',', $text ) );
	$path    = array_shift( $parts );
	$members = array();
	foreach ( $parts as $part ) {
		list( $name, $value ) = array_map( 'trim', explode( '=', $part, 2 ) + array( '', '' ) );
		$members[ $name ]     = $value;
	}
	Arguments::closed( $members, array( 'slug', 'pluginFile', 'loadAs' ), 'component' );
	if ( ! in_array( $members['loadAs'] ?? 'plugin', array( 'plugin', 'mu-plugin' ), true ) ) {
		throw Refusal::input( 'loadAs of component must be plugin or mu-plugin' );
	}
	$slug = ( $members['slug'] ?? '' ) !== '' ? $members['slug'] : basename( rtrim( $path, '/' ) );
	return probed( $slug, $members ) + array( 'loadAs' => $members['loadAs'] ?? 'plugin' );
}

/**
 * Describes a plugin of the guest by its slug: installed as a plugin, or loaded as a must-use plugin.
 *
 * @param string               $slug    Directory of the plugin.
 * @param array<string,string> $members Members pluginFile and loadAs of the component.
 * @return array<string,mixed>
 */
function probed( string $slug, array $members ): array {
	if ( 1 !== preg_match( '/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/D', $slug ) ) {
		throw Refusal::input( sprintf( '%s is not the slug of a plugin', Arguments::shown( $slug ) ) );
	}
	$file  = $members['pluginFile'] ?? '';
	$state = Plugins::state( Plugins::named( new Arguments( array( 'plugin' => '' === $file ? $slug : ( str_contains( $file, '/' ) ? $file : "$slug/$file" ) ) ) ) );
	if ( ! $state['installed'] ) {
		// A component that is loaded as a must-use plugin is in no list of WordPress; its files are among the loaded ones.
		$loaded = array_filter( get_included_files(), static fn ( string $path ): bool => str_contains( $path, "/$slug/" ) && ! str_contains( $path, '/plugins/' ) );

		$state['installed'] = array() !== $loaded;
		$state['active']    = array() !== $loaded;
	}
	return array( 'slug' => $slug ) + $state;
}

/**
 * Returns the slugs of the plugins that contracts name.
 *
 * @param string $json JSON list of slugs, or of objects with a slug.
 * @return list<string>
 * @throws Refusal When a contract names no plugin, or requires more.
 */
function contracts( string $json ): array {
	$list = json_decode( '' === $json ? '[]' : $json, true );
	if ( ! is_array( $list ) || ! array_is_list( $list ) ) {
		throw Refusal::input( 'provider-plugin-contracts-json must be a JSON list' );
	}
	return array_map(
		static function ( mixed $row ): string {
			$members = is_array( $row ) ? Arguments::closed( $row, array( 'slug', 'plugin', 'name', 'label' ), 'a contract' ) : array( 'slug' => $row );
			$slug    = $members['slug'] ?? $members['plugin'] ?? '';
			if ( ! is_string( $slug ) || '' === $slug ) {
				throw Refusal::input( 'a contract names no plugin: give slug' );
			}
			return $slug;
		},
		$list
	);
}

<?php
/**
 * Selection of the rows of a site seed.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

/**
 * Checks whether a scope selects a row: every list of the scope must contain the row's value.
 *
 * @param string               $kind  Kind of the row.
 * @param array<string, mixed> $row   Row to read.
 * @param array<string, mixed> $scope Scope of the kind.
 */
function seed_selects( string $kind, array $row, array $scope ): bool {
	$fields = array(
		'ids'        => array( 'ID', 'id', 'term_id' ),
		'slugs'      => array( 'post_name', 'slug' ),
		'names'      => array( 'name', 'user_login' ),
		'postTypes'  => array( 'post_type' ),
		'taxonomies' => array( 'taxonomy' ),
		'roles'      => array( 'role' ),
		'statuses'   => array( 'post_status' ),
	);
	$usual = array(
		'post_type'   => 'posts' === $kind ? 'post' : 'attachment',
		'post_status' => 'posts' === $kind ? 'publish' : 'inherit',
		'role'        => 'subscriber',
		'taxonomy'    => 'category',
	);
	foreach ( $fields as $list => $names ) {
		if ( empty( $scope[ $list ] ) ) {
			continue;
		}
		$own = null;
		foreach ( $names as $name ) {
			$own ??= $row[ $name ] ?? null;
		}
		$own ??= $usual[ $names[0] ] ?? null;
		if ( ! in_array( $own, $scope[ $list ], true ) ) {
			return false;
		}
	}
	return true;
}

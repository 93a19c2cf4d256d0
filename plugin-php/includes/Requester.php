<?php
/**
 * Requester of a run or bundle.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

use WPCodebox\Host\Site;

defined( 'ABSPATH' ) || exit;

/**
 * The record of a run and its bundle store who asked for it: the user's id, and the site on which this id names the user. Another
 * site may give the same id to another user, and a bundle can be imported there.
 */
final class Requester {

	/**
	 * Returns the requester of the current call as a run or bundle stores it.
	 *
	 * @param Site      $site      Site the plugin runs on.
	 * @param Authority $authority User or operator the call runs as.
	 * @return array{kind: string, id: int, site: string}
	 */
	public static function of_call( Site $site, Authority $authority ): array {
		$nobody = Authority::Operator === $authority ? 'operator' : 'none';
		return [
			'kind' => get_current_user_id() > 0 ? 'user' : $nobody,
			'id'   => get_current_user_id(),
			'site' => $site->id(),
		];
	}

	/**
	 * Checks whether a stored requester has the id of a user. For a document that may come from another site, is_user_of() checks
	 * the site too.
	 *
	 * @param mixed $requester Member `requester` of a record or document.
	 * @param int   $user_id   User id; 0 is no user.
	 */
	public static function is_user( mixed $requester, int $user_id ): bool {
		return $user_id > 0 && is_array( $requester ) && 'user' === ( $requester['kind'] ?? null ) && $user_id === ( $requester['id'] ?? null );
	}

	/**
	 * Checks whether a stored requester is a user of a site.
	 *
	 * @param mixed $requester Member `requester` of a document.
	 * @param int   $user_id   User id; 0 is no user.
	 * @param Site  $site      Site on which the id must name the user.
	 */
	public static function is_user_of( mixed $requester, int $user_id, Site $site ): bool {
		return self::is_user( $requester, $user_id ) && ( $requester['site'] ?? null ) === $site->id();
	}
}

<?php
/**
 * Command `wordpress.admin-action-inventory`: what requests to the admin area can set off: actions
 * of admin-ajax.php and admin-post.php with their callbacks, and the forms and links of pages.
 *
 * Pages are loaded one by one in processes of their own, `max-pages` of them (10 unless said
 * otherwise, 0 for none); a page that fails is named.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/admin-actions.php';
require __DIR__ . '/lib/admin-area.php';

finish( admin_actions( ... ) );

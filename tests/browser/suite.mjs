/**
 * The admin screen in a browser: who sees it, the way from task to applied change, the other
 * decisions, hostile content. And the block editor of a guest behind a preview.
 */
import { launch, summary, User } from './harness.mjs';
import access from './cases-access.mjs';
import path from './cases-path.mjs';
import decisions from './cases-decisions.mjs';
import hostile from './cases-hostile.mjs';
import editor from './cases-editor.mjs';

const browser = await launch();
try {
	const admin = await User.login( browser, 'admin' );
	await access( browser, admin );
	await path( browser, admin );
	await decisions( browser, admin );
	await hostile( browser, admin );
	await editor( browser );
} finally {
	await browser.close();
}
process.exitCode = summary();

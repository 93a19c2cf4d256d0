/**
 * Runs the cases of the admin screen in a browser: access, the main workflow from task to applied change,
 * other decisions, direct apply, bundles from a browser and hostile content; then the block editor of a sandbox through a preview.
 */
import { launch, summary, User } from './harness.mjs';
import access from './cases-access.mjs';
import path from './cases-path.mjs';
import decisions from './cases-decisions.mjs';
import direct from './cases-direct.mjs';
import origin from './cases-origin.mjs';
import hostile from './cases-hostile.mjs';
import editor from './cases-editor.mjs';

const browser = await launch();
try {
	const admin = await User.login( browser, 'admin' );
	await access( browser, admin );
	await path( browser, admin );
	await decisions( browser, admin );
	await direct( browser, admin );
	await origin( browser, admin );
	await hostile( browser, admin );
	await editor( browser );
} finally {
	await browser.close();
}
process.exitCode = summary();

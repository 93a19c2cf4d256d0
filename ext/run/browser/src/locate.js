// Finds elements by a CSS selector or by a locator: `text=`, `label=`, `role=`, `placeholder=`, `alt=`, `title=`, `testid=`,
// `xpath=` and `css=`. ` >> ` separates parts, each of which is searched in the elements that the part before it found.
((root, selector) => {
	const clean = (text) => String(text === null || text === undefined ? '' : text).replace(/\s+/g, ' ').trim();
	const skipped = ['SCRIPT', 'STYLE', 'NOSCRIPT', 'TEMPLATE', 'HEAD'];
	const matcher = (wanted) => {
		const pattern = /^\/(.+)\/([a-z]*)$/.exec(wanted);
		if (pattern) {
			const expression = new RegExp(pattern[1], pattern[2].replace(/[gy]/g, ''));
			return { whole: true, fits: (text) => expression.test(clean(text)) };
		}
		const quoted = /^(["'])(.*)\1$/s.exec(wanted);
		if (quoted) return { part: clean(quoted[2]), fits: (text) => clean(text) === clean(quoted[2]) };
		const part = clean(wanted).toLowerCase();
		return { part, fits: (text) => clean(text).toLowerCase().includes(part) };
	};
	const labelOf = (element) => {
		const view = element.ownerDocument;
		const ids = clean(element.getAttribute('aria-labelledby')).split(' ').filter(Boolean);
		const named = ids.map((id) => view.getElementById(id)).filter(Boolean);
		if (named.length) return clean(named.map((one) => one.textContent).join(' '));
		if (element.getAttribute('aria-label')) return clean(element.getAttribute('aria-label'));
		return element.labels ? clean([...element.labels].map((one) => one.textContent).join(' ')) : '';
	};
	const nameOf = (element) => {
		const label = labelOf(element);
		if (label) return label;
		if (element.tagName === 'INPUT' && ['submit', 'button', 'reset'].includes(element.type)) return clean(element.value || element.type);
		if (element.alt) return clean(element.alt);
		if (!['INPUT', 'SELECT', 'TEXTAREA', 'IMG'].includes(element.tagName)) {
			const images = [...element.querySelectorAll('img[alt], [aria-label]')].map((one) => one.getAttribute('aria-label') || one.alt);
			const text = clean(element.textContent) || clean(images.join(' '));
			if (text) return text;
		}
		return clean(element.getAttribute('title') || element.getAttribute('placeholder') || '');
	};
	const inputs = { button: 'button', submit: 'button', reset: 'button', image: 'button', checkbox: 'checkbox', radio: 'radio', range: 'slider', number: 'spinbutton', search: 'searchbox', hidden: '', file: '', color: '', date: '', password: '' };
	const tags = {
		BUTTON: 'button', SUMMARY: 'button', H1: 'heading', H2: 'heading', H3: 'heading', H4: 'heading', H5: 'heading', H6: 'heading', IMG: 'img', NAV: 'navigation', MAIN: 'main',
		UL: 'list', OL: 'list', LI: 'listitem', TEXTAREA: 'textbox', TABLE: 'table', TR: 'row', TD: 'cell', TH: 'columnheader', FORM: 'form', DIALOG: 'dialog', ARTICLE: 'article',
		ASIDE: 'complementary', HEADER: 'banner', FOOTER: 'contentinfo', OPTION: 'option', PROGRESS: 'progressbar', HR: 'separator', P: 'paragraph', FIGURE: 'figure', FIELDSET: 'group', OUTPUT: 'status',
	};
	const roleOf = (element) => {
		const given = clean(element.getAttribute('role')).split(' ')[0];
		if (given) return given;
		if (element.tagName === 'A' || element.tagName === 'AREA') return element.hasAttribute('href') ? 'link' : '';
		if (element.tagName === 'SELECT') return element.multiple || element.size > 1 ? 'listbox' : 'combobox';
		if (element.tagName === 'INPUT') return element.type in inputs ? inputs[element.type] : 'textbox';
		return tags[element.tagName] || '';
	};
	const byText = (scope, wanted) => {
		const match = matcher(wanted);
		const holds = (element) => match.whole || clean(element.textContent).toLowerCase().includes(match.part.toLowerCase());
		const found = [];
		const walk = (element) => {
			if (skipped.includes(element.tagName)) return false;
			if (element.tagName === 'INPUT' && ['submit', 'button', 'reset'].includes(element.type)) {
				const fits = match.fits(element.value);
				if (fits) found.push(element);
				return fits;
			}
			// Buttons of type input have no text of their own, so an element that contains one must be walked, too.
			if (!holds(element) && !element.querySelector('input[type=submit], input[type=button], input[type=reset]')) return false;
			let inside = false;
			for (const child of element.children) inside = walk(child) || inside;
			if (inside) return true;
			const fits = match.fits(element.textContent);
			if (fits) found.push(element);
			return fits;
		};
		for (const child of scope.children || []) walk(child);
		return found;
	};
	const byAttribute = (scope, name, wanted) => {
		const match = matcher(wanted);
		return [...scope.querySelectorAll(`[${name}]`)].filter((one) => match.fits(one.getAttribute(name)));
	};
	const byLabel = (scope, wanted) => {
		const match = matcher(wanted);
		return [...scope.querySelectorAll('input, select, textarea, button, meter, output, progress, [aria-label], [aria-labelledby]')]
			.filter((one) => labelOf(one) !== '' && match.fits(labelOf(one)));
	};
	const byRole = (scope, text) => {
		const head = /^\s*([a-z]+)\s*((?:\[[^\]]*\]\s*)*)$/is.exec(text);
		if (!head) throw new Error(`role=${text} is not a valid selector; write role=button or role=button[name="Save"]`);
		const conditions = [...head[2].matchAll(/\[\s*([a-z-]+)\s*(?:=\s*("(?:[^"\\]|\\.)*"|'[^']*'|\/.+\/[a-z]*|[^\]\s]+)\s*(i|s)?)?\s*\]/gis)].map(([, name, value, flag]) => {
			if (name === 'name') {
				const bare = /^(["'])(.*)\1$/s.exec(value || '');
				const match = matcher(flag === 'i' && bare ? bare[2] : value || '');
				return (element) => match.fits(nameOf(element));
			}
			const wanted = value === undefined ? 'true' : value.replace(/^["']|["']$/g, '');
			if (name === 'level') return (element) => (element.getAttribute('aria-level') || element.tagName.slice(1)) === wanted;
			if (name === 'disabled') return (element) => String(element.matches(':disabled') || element.getAttribute('aria-disabled') === 'true') === wanted;
			if (name === 'checked') return (element) => String(element.checked === undefined ? element.getAttribute('aria-checked') === 'true' : element.checked) === wanted;
			if (name === 'selected') return (element) => String(element.selected === undefined ? element.getAttribute('aria-selected') === 'true' : element.selected) === wanted;
			if (['pressed', 'expanded'].includes(name)) return (element) => String(element.getAttribute(`aria-${name}`) === 'true') === wanted;
			if (name === 'include-hidden') return () => true;
			throw new Error(`role=${text} is not a valid selector: there is no condition ${name}`);
		});
		return [...scope.querySelectorAll('*')].filter((one) => roleOf(one) === head[1].toLowerCase() && conditions.every((holds) => holds(one)));
	};
	const byPath = (scope, path) => {
		const found = [];
		const view = scope.ownerDocument || scope;
		const rows = view.evaluate(path, scope, null, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE, null);
		for (let at = 0; at < rows.snapshotLength; at++) if (rows.snapshotItem(at).nodeType === 1) found.push(rows.snapshotItem(at));
		return found;
	};
	const one = (scope, part) => {
		const locator = /^(css|text|label|role|placeholder|alt|title|testid|data-testid|xpath)=(.*)$/s.exec(part);
		if (!locator) return part.startsWith('//') ? byPath(scope, part) : [...scope.querySelectorAll(part)];
		const [, kind, wanted] = locator;
		if (wanted.trim() === '') throw new Error(`${part} is not a valid selector: nothing follows =`);
		if (kind === 'css') return [...scope.querySelectorAll(wanted)];
		if (kind === 'text') return byText(scope, wanted.trim());
		if (kind === 'label') return byLabel(scope, wanted.trim());
		if (kind === 'role') return byRole(scope, wanted);
		if (kind === 'xpath') return byPath(scope, wanted);
		return byAttribute(scope, { testid: 'data-testid', 'data-testid': 'data-testid' }[kind] || kind, wanted.trim());
	};
	const parts = selector.split(' >> ').map((part) => part.trim());
	let found = one(root, parts[0]);
	for (const part of parts.slice(1)) found = [...new Set(found.flatMap((scope) => one(scope, part)))];
	return found;
})
